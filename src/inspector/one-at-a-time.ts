/** Dear work whose result many may ask for: whoever asks while it is done shares what is begun behind it, which knows all that was before. */

export class OneAtATime<T> {
  readonly #work: () => Promise<T>;
  #now: Promise<T> | null = null;
  #next: Promise<T> | null = null;

  constructor(work: () => Promise<T>) {
    this.#work = work;
  }

  ask(): Promise<T> {
    if (this.#next !== null) return this.#next;
    if (this.#now === null) return this.#begin();
    const begin = () => this.#begin();
    this.#next = this.#now.then(begin, begin);
    return this.#next;
  }

  #begin(): Promise<T> {
    this.#next = null;
    const now = this.#work().finally(() => {
      if (this.#now === now) this.#now = null;
    });
    this.#now = now;
    return now;
  }
}
