import { Voice } from 'adk-stream-protocol/voice'
import { useEffect, useState } from 'react'

import { music } from '../music/music.ts'
import { live } from '../wire/wire.ts'

/** Returns the voice of a chat. It stops when the chat or the mode changes. It lowers the music, and Escape interrupts the model. */
export function useChatVoice(chatId: string): Voice {
  const [voice] = useState(() => new Voice({ transport: live, chatId }))
  useEffect(() => () => voice.stop(), [voice])
  useEffect(() => {
    const leave = voice.onSpeaking((speaking) => (speaking ? music.duck() : music.unduck()))
    return () => {
      leave()
      music.unduck()
    }
  }, [voice])
  useEffect(() => {
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
