import type { KeyboardEvent, PointerEvent } from 'react'
import { useCallback, useSyncExternalStore, useEffect, useRef, useState } from 'react'

/** The observable state of a `Voice`. */
export interface VoiceSource<State> {
  /** The current state: the same object until it changes. */
  readonly state: State
  /** Returns a function that unsubscribes. */
  subscribe(listener: () => void): () => void
}

/** Returns the state of a voice, or `undefined` if there is none, as in a chat over HTTP. */
export function useVoice<State>(voice: VoiceSource<State>): State
/** Returns the state of a voice, or `undefined` if there is none. */
export function useVoice<State>(voice: VoiceSource<State> | undefined): State | undefined
export function useVoice<State>(voice: VoiceSource<State> | undefined): State | undefined {
  const subscribe = useCallback(
    (listener: () => void) => voice?.subscribe(listener) ?? (() => undefined),
    [voice],
  )
  const read = (): State | undefined => voice?.state
  return useSyncExternalStore(subscribe, read, read)
}

interface PushToTalkVoice {
  start(): Promise<void>
  press(): void
  release(): void
  setMode(mode: 'push-to-talk'): void
}

/** Returns event handlers for a push-to-talk button. It works by pointer, Space and Enter, and ends however the press ends. */
export function usePushToTalk(voice: PushToTalkVoice) {
  const [held, setHeld] = useState(false)
  const isHeld = useRef(false)
  const press = async (): Promise<void> => {
    if (isHeld.current) return
    isHeld.current = true
    setHeld(true)
    voice.setMode('push-to-talk')
    await voice.start()
    // The browser may have asked for the microphone, and the button may have been released meanwhile.
    if (isHeld.current) voice.press()
  }
  const release = (): void => {
    if (!isHeld.current) return
    isHeld.current = false
    setHeld(false)
    voice.release()
  }
  useEffect(
    () => () => {
      if (isHeld.current) voice.release()
      isHeld.current = false
    },
    [voice],
  )
  const handlers = {
    onPointerDown: (event: PointerEvent<HTMLElement>) => {
      if (event.button !== 0) return
      // The press continues if the finger slides off the button.
      event.currentTarget.setPointerCapture?.(event.pointerId)
      // The state of the voice reports the result.
      void press()
    },
    onPointerUp: release,
    onPointerCancel: release,
    onBlur: release,
    onKeyDown: (event: KeyboardEvent) => {
      if (!isHoldKey(event)) return
      event.preventDefault()
      if (!event.repeat) void press()
    },
    onKeyUp: (event: KeyboardEvent) => {
      if (isHoldKey(event)) release()
    },
    // A long touch must not open the context menu.
    onContextMenu: (event: { preventDefault(): void }) => event.preventDefault(),
  }
  return { held, handlers }
}

function isHoldKey({ key }: KeyboardEvent): boolean {
  return key === ' ' || key === 'Enter'
}
