/** Open resources, which are closed in reverse order. Node 20 has no `AsyncDisposableStack`. */
export interface Lifetime {
  /** Adds a resource that is disposed on close. */
  use<Resource extends AsyncDisposable | Disposable>(resource: Resource): Resource
  /** Adds a function that runs on close. */
  defer(close: () => void | Promise<void>): void
  /** Closes everything once. If one step fails, the others still run. */
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
      // Sequential, because a resource may need one that was opened before it.
      await step()
    } catch (failure) {
      failures.push(failure)
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, 'The demo did not close cleanly.')
}
