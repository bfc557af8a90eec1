/** A promise with its resolvers. Node 20 has no `Promise.withResolvers`. */
export interface Deferred<T> extends Resolvers<T> {
  readonly promise: Promise<T>
}

interface Resolvers<T> {
  resolve: (value: T) => void
  reject: (reason: unknown) => void
}

export function defer<T>(): Deferred<T> {
  const resolvers: Partial<Resolvers<T>> = {}
  const promise = new Promise<T>((resolve, reject) => {
    resolvers.resolve = resolve
    resolvers.reject = reject
  })
  // The constructor runs the executor synchronously, so both are set.
  return { promise, ...(resolvers as Resolvers<T>) }
}
