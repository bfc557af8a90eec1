import { useSyncExternalStore } from 'react'

interface StoredChoiceOptions<Value extends string> {
  /** The key in `localStorage`. */
  readonly key: string
  readonly values: readonly Value[]
  readonly fallback: Value
  /** Whether each tab has its own value. A new tab starts with the value that was chosen last. Default false. */
  readonly perTab?: boolean
}

/** A setting in `localStorage` that all tabs share, unless it belongs to a tab. */
export class StoredChoice<Value extends string> {
  readonly #options: StoredChoiceOptions<Value>
  readonly #listeners = new Set<() => void>()

  constructor(options: StoredChoiceOptions<Value>) {
    this.#options = options
  }

  readonly read = (): Value => {
    const { key, values, fallback, perTab } = this.#options
    const stored = (perTab && sessionStorage.getItem(key)) || localStorage.getItem(key)
    const value = values.find((each) => each === stored) ?? fallback
    // From now on, the choice of another tab does not change this one.
    if (perTab) sessionStorage.setItem(key, value)
    return value
  }

  readonly choose = (value: Value): void => {
    const { key, perTab } = this.#options
    localStorage.setItem(key, value)
    if (perTab) sessionStorage.setItem(key, value)
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
