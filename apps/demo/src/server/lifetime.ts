/** What was opened, to be closed in the reverse order. Node 20 has no `AsyncDisposableStack`. */
export interface Lifetime {
  /** Takes charge of something that is open. */
  use<Resource extends AsyncDisposable | Disposable>(resource: Resource): Resource
  /** Adds a step to run on close. */
  defer(close: () => void | Promise<void>): void
  /** Closes all of it, once; what fails to close does not keep the rest open. */
  close(): Promise<void>
}

export function createLifetime(): Lifetime {
  const steps: (() => void | Promise<void>)[] = []
  let closing: Promise<void> | undefined
  return {
    use(resource) {
      steps.push(() =>
        Symbol.asyncDispose in resource
          ? Promise.resolve(resource[Symbol.asyncDispose]())
          : resource[Symbol.dispose](),
      )
      return resource
    },
    defer: (close) => void steps.push(close),
    close: () => (closing ??= closeAll(steps)),
  }
}

async function closeAll(steps: (() => void | Promise<void>)[]): Promise<void> {
  const failures: unknown[] = []
  for (let step = steps.pop(); step; step = steps.pop()) {
    try {
      // One after the other: each may need what was opened before it.
      // oxlint-disable-next-line no-await-in-loop
      await step()
    } catch (failure) {
      failures.push(failure)
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, 'The demo did not close cleanly.')
}
