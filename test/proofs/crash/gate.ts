/** The port of the process that takes deliveries now; who sends waits for it while there is none. */
export class Gate {
  #port: number | null = null;
  readonly #waiting: ((port: number) => void)[] = [];

  open(port: number): void {
    this.#port = port;
    for (const resolve of this.#waiting.splice(0)) resolve(port);
  }

  close(): void {
    this.#port = null;
  }

  port(): Promise<number> {
    if (this.#port !== null) return Promise.resolve(this.#port);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}
