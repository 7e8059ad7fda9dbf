/** Whether a value is a text that parses as an http or https URL (WHK-25, UPD-15). */
export function isHttpUrl(value: unknown): value is string {
  return typeof value === "string" && /^https?:\/\//i.test(value) && URL.canParse(value);
}
