/** Presses what has a name, as a person does, and waits for what the page says to it. */
import type { Locator, Page } from "playwright-core";

/** How a person presses what has a name: in the open dialog, where there is one. */
export type Press = (page: Page, name: string | RegExp) => Promise<void>;

export async function buttonOf(page: Page, name: string | RegExp): Promise<Locator> {
  const dialog = page.locator("dialog[open]");
  const scope = (await dialog.count()) > 0 ? dialog : page;
  return scope.getByRole("button", { name }).first();
}

export const byMouse: Press = async (page, name) => (await buttonOf(page, name)).click();

/** Resolves when the page's status line, or a dialog's, says it. */
export function told(page: Page, text: string | RegExp): Promise<void> {
  return page.getByRole("status").filter({ hasText: text }).waitFor();
}
