import { useSyncExternalStore } from 'react'

interface StoredChoiceOptions<Value extends string> {
  /** The key in `localStorage`. */
  readonly key: string
  readonly values: readonly Value[]
  readonly fallback: Value
}

/** A setting in `localStorage` that all tabs share. */
export class StoredChoice<Value extends string> {
  readonly #options: StoredChoiceOptions<Value>
  readonly #listeners = new Set<() => void>()

  constructor(options: StoredChoiceOptions<Value>) {
    this.#options = options
  }

  readonly read = (): Value => {
    const { key, values, fallback } = this.#options
    const stored = localStorage.getItem(key)
    return values.find((value) => value === stored) ?? fallback
  }

  readonly choose = (value: Value): void => {
    localStorage.setItem(this.#options.key, value)
    for (const listener of this.#listeners) listener()
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    const fromOtherTab = ({ key }: StorageEvent) => {
      // The key is null if the storage was cleared.
      if (key === this.#options.key || key === null) listener()
    }
    this.#listeners.add(listener)
    window.addEventListener('storage', fromOtherTab)
    return () => {
      this.#listeners.delete(listener)
      window.removeEventListener('storage', fromOtherTab)
    }
  }
}

export function useChoice<Value extends string>(
  choice: StoredChoice<Value>,
): readonly [Value, (value: Value) => void] {
  return [useSyncExternalStore(choice.subscribe, choice.read), choice.choose]
}
