// Prints how many files knip analysed: without it, a run that saw nothing looks like a clean one.
export default ({ counters }) => process.stdout.write(`analysed ${counters.total} files\n`);
