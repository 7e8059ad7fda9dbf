/** Versions of packages, and the one kind of range that our manifest has: `^1.2.3`. */

export type Version = readonly [major: number, minor: number, patch: number];

export interface VersionRange {
  readonly from: Version;
  /** Not included. */
  readonly below?: Version;
}

/** The first version in a text: of `>=20.19.0`, 20.19.0. A pre-release counts as what it comes before. */
export function versionOf(text: string): Version {
  const [, major, minor, patch] = /(\d+)\.(\d+)\.(\d+)/.exec(text) ?? [];
  return [Number(major), Number(minor), Number(patch)];
}

/** What `^1.2.3` allows: everything up to the next first number that is not 0. */
export function caretRange(text: string): VersionRange {
  const from = versionOf(text);
  const [major, minor, patch] = from;
  if (major > 0) return { from, below: [major + 1, 0, 0] };
  return { from, below: minor > 0 ? [0, minor + 1, 0] : [0, 0, patch + 1] };
}

export function isWithin(version: string, { from, below }: VersionRange): boolean {
  const given = versionOf(version);
  return order(given, from) >= 0 && (below === undefined || order(given, below) < 0);
}

function order(a: Version, b: Version): number {
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
}
