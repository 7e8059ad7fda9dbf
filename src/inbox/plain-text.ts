/**
 * A text of our own, such as an error's or an operator's name, as every database gives it back: not each takes NUL, nor half of a
 * surrogate pair. It need not come back exactly, but two stores of one inbox must agree.
 */
export function plainText(text: string): string {
  return text.replaceAll("\0", "\ufffd").toWellFormed();
}
