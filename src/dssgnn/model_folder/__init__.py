"""The model folder: everything about a fitted model, in files that anybody can read, without a pickle."""

from dssgnn.model_folder.reading import load_folder
from dssgnn.model_folder.writing import SCHEMA, check_target, save_folder

__all__ = ["SCHEMA", "check_target", "load_folder", "save_folder"]
