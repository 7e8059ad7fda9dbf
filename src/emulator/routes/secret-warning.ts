/** What is said of a webhook secret that the service takes and no receiver of this package does. */
import { secretTextIssue } from "../../signature/secret.ts";

/** The specification has no rule for a secret's length (WHK-24), so it is taken. Null for one that receivers take too. */
export function secretWarning(secret: string): string | null {
  const issue = secretTextIssue(secret);
  if (issue === null) return null;
  return `The webhook secret ${issue}. The service takes it, as its specification has no such rule, but oncehook's receivers refuse it.`;
}
