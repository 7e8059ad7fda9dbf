/** The least coverage, in percent, that a run of all tests must reach; raised when it has been above for good. */
export const COVERAGE_FLOOR = { lines: 99, statements: 98.4, functions: 98.7, branches: 95.3 };
