/** A queue that one side pushes to and another side iterates over. It supports one reader at a time. */
export class AsyncQueue<Value> implements AsyncIterableIterator<Value, void> {
  #values: Value[] = []
  /** Index of the next value to read. */
  #next = 0
  #end: 'open' | 'closed' | { readonly error: unknown } = 'open'
  #reader: Reader<Value> | undefined

  get isOpen(): boolean {
    return this.#end === 'open'
  }

  push(value: Value): void {
    if (this.#end !== 'open') return
    const reader = this.#reader
    if (!reader) {
      this.#values.push(value)
      return
    }
    this.#reader = undefined
    reader.resolve({ done: false, value })
  }

  /** Removes the queued values up to the last one that matches. Keeps all if none matches. */
  removeThroughLast(matches: (value: Value) => boolean): void {
    const queued = this.#values.slice(this.#next)
    this.#values = queued.slice(queued.findLastIndex(matches) + 1)
    this.#next = 0
  }

  /** Ends the iteration after the values that are already queued. */
  close(): void {
    this.#finish('closed')
  }

  /** Makes the reader throw after the values that are already queued. */
  fail(error: unknown): void {
    this.#finish({ error })
  }

  next(): Promise<IteratorResult<Value, void>> {
    if (this.#next < this.#values.length) {
      // The index was checked.
      const value = this.#values[this.#next] as Value
      this.#next += 1
      if (this.#next === this.#values.length) {
        this.#values = []
        this.#next = 0
      }
      return Promise.resolve({ done: false, value })
    }
    if (typeof this.#end === 'object') return Promise.reject(asError(this.#end.error))
    if (this.#end === 'closed') return Promise.resolve(DONE)
    return new Promise((resolve, reject) => {
      this.#reader = { resolve, reject }
    })
  }

  /** Drops the queued values, because the reader has stopped. */
  return(): Promise<IteratorResult<Value, void>> {
    this.#values = []
    this.#next = 0
    this.#finish('closed')
    return Promise.resolve(DONE)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  #finish(end: 'closed' | { readonly error: unknown }): void {
    if (this.#end !== 'open') return
    this.#end = end
    const reader = this.#reader
    this.#reader = undefined
    if (!reader) return
    if (end === 'closed') reader.resolve(DONE)
    else reader.reject(asError(end.error))
  }
}

interface Reader<Value> {
  readonly resolve: (result: IteratorResult<Value, void>) => void
  readonly reject: (error: unknown) => void
}

const DONE = { done: true, value: undefined } as const

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}

/** A promise with the functions that settle it. `Promise.withResolvers` is missing in Node 20. */
export interface Deferred<Value> {
  readonly promise: Promise<Value>
  readonly resolve: (value: Value) => void
  readonly reject: (error: unknown) => void
}

export function defer<Value = void>(): Deferred<Value> {
  let settle: Omit<Deferred<Value>, 'promise'> | undefined
  const promise = new Promise<Value>((resolve, reject) => {
    settle = { resolve, reject }
  })
  // A promise calls its executor synchronously.
  return { promise, ...(settle as Omit<Deferred<Value>, 'promise'>) }
}

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

/** Reads all items. */
export async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const all: Item[] = []
  for await (const item of items) all.push(item)
  return all
}

/** How long a function of the application may take, in ms. */
const HOOK_TIMEOUT_MS = 5_000

/** Calls a function of the application. Rejects if it throws or takes longer than `HOOK_TIMEOUT_MS`. */
export async function callInTime<Result>(
  name: string,
  run: () => Result | Promise<Result>,
): Promise<Result> {
  const result = run()
  if (!isPromiseLike(result)) return result
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () => reject(new Error(`${name} took longer than ${HOOK_TIMEOUT_MS} ms.`)),
      HOOK_TIMEOUT_MS,
    )
  })
  try {
    return await Promise.race([result, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Whether a value can be awaited. Query builders of databases are no `Promise`s, and run when they are awaited. */
function isPromiseLike(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'then' in value
}
