import { useCallback, useSyncExternalStore } from 'react'

/** The observable state of a `Voice`. */
export interface VoiceSource<State> {
  /** The current state: the same object until it changes. */
  readonly state: State
  /** Returns a function that unsubscribes. */
  subscribe(listener: () => void): () => void
}

/** Returns the state of a voice, or `undefined` if there is none, as in a chat over HTTP. */
export function useVoice<State>(voice: VoiceSource<State>): State
export function useVoice<State>(voice: VoiceSource<State> | undefined): State | undefined
export function useVoice<State>(voice: VoiceSource<State> | undefined): State | undefined {
  const subscribe = useCallback(
    (listener: () => void) => voice?.subscribe(listener) ?? (() => undefined),
    [voice],
  )
  const read = (): State | undefined => voice?.state
  return useSyncExternalStore(subscribe, read, read)
}
