/** Commands that run in the tests' process hear its signals, and must not go on hearing them. */
const SIGNALS = ["SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP"] as const;

/** The function it gives takes away whoever listens to a signal since. */
export function keepSignals(): () => void {
  const before = SIGNALS.map((name) => [name, process.listeners(name)] as const);
  return () => {
    for (const [name, kept] of before)
      for (const listener of process.listeners(name)) if (!kept.includes(listener)) process.off(name, listener);
  };
}
