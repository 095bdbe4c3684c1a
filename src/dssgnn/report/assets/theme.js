// Runs in the head, before anything is painted. The choice is remembered where the browser lets a file do so.
(() => {
  "use strict";
  const system = matchMedia("(prefers-color-scheme: dark)");
  const stored = () => {
    try {
      return localStorage.getItem("dssgnn-theme");
    } catch {
      return null;
    }
  };
  const apply = (theme) => {
    document.documentElement.dataset.theme = theme;
    const button = document.getElementById("theme");
    if (button) button.textContent = theme === "dark" ? "Light colours" : "Dark colours";
  };
  const current = () => stored() || (system.matches ? "dark" : "light");
  apply(current());
  system.addEventListener("change", () => apply(current()));
  document.addEventListener("DOMContentLoaded", () => {
    apply(document.documentElement.dataset.theme);
    document.getElementById("theme").addEventListener("click", () => {
      const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
      try {
        localStorage.setItem("dssgnn-theme", next);
      } catch {
        /* not remembered, but shown */
      }
      apply(next);
    });
  });
})();
