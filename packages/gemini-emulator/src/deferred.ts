/** A promise and its two ends; `Promise.withResolvers` is not in Node 20. */
export interface Deferred<T> {
  readonly promise: Promise<T>
  readonly resolve: (value: T) => void
  readonly reject: (reason: unknown) => void
}

export function defer<T>(): Deferred<T> {
  const ends: Partial<Pick<Deferred<T>, 'resolve' | 'reject'>> = {}
  const promise = new Promise<T>((resolve, reject) => {
    ends.resolve = resolve
    ends.reject = reject
  })
  // The executor above runs before the constructor returns, so both ends are set.
  return { promise, ...(ends as Pick<Deferred<T>, 'resolve' | 'reject'>) }
}
