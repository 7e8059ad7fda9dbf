/** Ends a stream of the inspector that nobody reads any more. */

/** Without waiting: a generator ends behind the step that it is at. */
export function endStream(iterator: AsyncIterator<string>): void {
  Promise.resolve(iterator.return?.()).catch(() => {});
}
