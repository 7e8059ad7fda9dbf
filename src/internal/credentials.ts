/** Whether an address names who asks: `fetch` refuses such a one, and whatever shows it shows a password. */
export function hasCredentials({ username, password }: Pick<URL, "username" | "password">): boolean {
  return username !== "" || password !== "";
}
