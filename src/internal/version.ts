/** The version of this package. A constant, because a bundle has no package.json beside it; a test compares both. */
export const VERSION = "0.1.0";

/** What requests of this package say in `User-Agent`. */
export const USER_AGENT = `oncehook/${VERSION}`;
