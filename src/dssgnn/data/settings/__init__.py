"""Tasks made from graphs: outliers to detect (GNNSafe), and distribution shifts to withstand (GOOD)."""

from dssgnn.data.settings.named import OOD_SETTINGS, SHIFT_SETTINGS, ood_setting, setting_rows, shift_setting
from dssgnn.data.settings.ood import OODSetting, feature_shift, label_leave_out, structure_shift
from dssgnn.data.settings.shift import concept_split, covariate_split
from dssgnn.data.settings.shift_split import ShiftSplit

__all__ = [
    "OOD_SETTINGS",
    "SHIFT_SETTINGS",
    "OODSetting",
    "ShiftSplit",
    "concept_split",
    "covariate_split",
    "feature_shift",
    "label_leave_out",
    "ood_setting",
    "setting_rows",
    "shift_setting",
    "structure_shift",
]
