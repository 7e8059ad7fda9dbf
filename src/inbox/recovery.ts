/**
 * An expired lease may belong to an event that kills its process. So what runs ends first, then that one lease is claimed
 * alone, and nothing else is claimed until it has settled: it takes no neighbours with it.
 */
export class Recovery {
  #state: "none" | "waiting" | "claiming" | "running" = "none";

  get isUnderWay(): boolean {
    return this.#state !== "none";
  }

  /** The next claim is for the expired lease. */
  get wantsClaim(): boolean {
    return this.#state === "claiming";
  }

  begin(): void {
    this.#state = "waiting";
  }

  /** The claim came back: with the lease, or without, since another process was first. */
  claimed(found: boolean): void {
    this.#state = found ? "running" : "none";
  }

  /** Nothing runs. Answers whether there is something new to claim. */
  quiet(): boolean {
    if (this.#state === "waiting") this.#state = "claiming";
    else if (this.#state === "running") this.#state = "none";
    else return false;
    return true;
  }
}
