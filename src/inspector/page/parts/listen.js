/** Hears of what happens to the page, for as long as a component is in it. */
import { useLayoutEffect } from "../vendor/htm-preact.js";

/** It is the `listener` of the last drawing that hears. @template {Event} E @param {EventTarget} target @param {string} type @param {(event: E) => unknown} listener */
export function useListener(target, type, listener) {
  const hear = /** @type {EventListener} */ (listener);
  useLayoutEffect(() => {
    target.addEventListener(type, hear);
    return () => target.removeEventListener(type, hear);
  });
}
