import { Voice } from 'adk-stream-protocol/voice'
import { useEffect, useMemo } from 'react'

import { music } from '../music/music.ts'
import type { Mode } from '../settings/mode.ts'
import { live } from '../wire/wire.ts'

/**
 * Returns the voice of a chat in live mode. It stops when the chat or the mode changes. It lowers the music, and Escape interrupts
 * the model.
 */
export function useChatVoice(chatId: string, mode: Mode): Voice | undefined {
  const voice = useMemo(
    () => (mode === 'live' ? new Voice({ transport: live, chatId }) : undefined),
    [chatId, mode],
  )
  useEffect(() => () => voice?.stop(), [voice])
  useEffect(() => {
    if (!voice) return
    const leave = voice.onSpeaking((speaking) => (speaking ? music.duck() : music.unduck()))
    return () => {
      leave()
      music.unduck()
    }
  }, [voice])
  useEffect(() => {
    if (!voice) return
    const interrupt = (event: KeyboardEvent) => {
      if (event.key !== 'Escape' || event.isComposing || isOverlayOpen()) return
      if (voice.state.state === 'model-speaking') voice.interrupt()
    }
    document.addEventListener('keydown', interrupt)
    return () => document.removeEventListener('keydown', interrupt)
  }, [voice])
  return voice
}

/** Escape closes an open dialog or popover instead. */
function isOverlayOpen(): boolean {
  return document.querySelector('dialog:modal, :popover-open') !== null
}
