/** Runs a task one at a time. A call during a run waits for a run that starts later; all such calls share it. */
export class SerialTask {
  readonly #task: () => Promise<void>
  #running: Promise<void> | undefined

  constructor(task: () => Promise<void>) {
    this.#task = task
  }

  get isRunning(): boolean {
    return this.#running !== undefined
  }

  async run(): Promise<void> {
    await this.#running
    this.#running ??= this.#task().finally(() => {
      this.#running = undefined
    })
    await this.#running
  }

  /** Resolves when no run is active. */
  async settled(): Promise<void> {
    await this.#running
  }
}
