import { type KeyboardEvent, type PointerEvent, useEffect, useRef, useState } from 'react'

interface Talking {
  start(): Promise<void>
  press(): void
  release(): void
  setMode(mode: 'push-to-talk'): void
}

/** Speaks while a button is held: by pointer, by Space or by Enter. However the hold ends, the speaking does. */
export function useHoldToTalk(voice: Talking) {
  const [held, setHeld] = useState(false)
  const isHeld = useRef(false)
  const press = async (): Promise<void> => {
    if (isHeld.current) return
    isHeld.current = true
    setHeld(true)
    voice.setMode('push-to-talk')
    await voice.start()
    // The browser may have asked for the microphone, and the button was left meanwhile.
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
      // A finger that slides off the button still holds it.
      event.currentTarget.setPointerCapture?.(event.pointerId)
      // What comes of it is told by the state of the voice.
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
    // A long touch is meant, and no menu.
    onContextMenu: (event: { preventDefault(): void }) => event.preventDefault(),
  }
  return { held, handlers }
}

function isHoldKey({ key }: KeyboardEvent): boolean {
  return key === ' ' || key === 'Enter'
}
