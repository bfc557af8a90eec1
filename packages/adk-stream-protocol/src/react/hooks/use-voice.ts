import { useCallback, useSyncExternalStore } from 'react'

/** What a `Voice` shows of itself. */
export interface VoiceSource<State> {
  /** The same object until it changes. */
  readonly state: State
  subscribe(listener: () => void): () => void
}

/** The state of a voice; nothing where there is no voice, as in a chat over HTTP. */
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
