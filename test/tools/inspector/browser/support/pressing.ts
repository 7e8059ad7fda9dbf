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

/** Resolves when the first of them is drawn. */
export function shown(locator: Locator): Promise<void> {
  return locator.first().waitFor();
}

/** Holds requests to an address back; `letGo` sends them on, and `asked` counts them. */
export async function holdBack(page: Page, path: string) {
  let letGo = () => {};
  const held = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const holding = { asked: 0, letGo, end: () => page.unroute(path) };
  await page.route(path, (route) => {
    holding.asked += 1;
    return held.then(() => route.continue());
  });
  return holding;
}
