import { useSyncExternalStore } from 'react'

/** A value outside of React with its listeners. */
interface Observable<Value> {
  readonly read: () => Value
  readonly subscribe: (listener: () => void) => () => void
}

/** Returns the current value. The component renders when it changes. */
export function useValue<Value>({ subscribe, read }: Observable<Value>): Value {
  return useSyncExternalStore(subscribe, read)
}

/** A value that any part of the page may set. */
export class ObservableValue<Value> implements Observable<Value> {
  readonly #listeners = new Set<() => void>()
  #value: Value

  constructor(value: Value) {
    this.#value = value
  }

  readonly read = (): Value => this.#value

  /** Returns a function that unsubscribes. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  readonly set = (value: Value): void => {
    this.#value = value
    for (const listener of this.#listeners) listener()
  }
}
