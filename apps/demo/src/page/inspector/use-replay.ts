import {
  type AdkUIMessage,
  type Pace,
  playRecording,
  type Playback,
} from 'adk-stream-protocol/client'
import { useEffect, useRef, useState } from 'react'

export interface Replay {
  readonly messages: readonly AdkUIMessage[]
  readonly isOver: boolean
  readonly step: () => void
}

/** Plays a recording from the start. Use a `key` to mount the component again for another recording or speed. */
export function useReplay(recording: string, pace: Pace): Replay {
  const [messages, setMessages] = useState<readonly AdkUIMessage[]>([])
  const [isOver, setOver] = useState(false)
  const playing = useRef<Playback>(undefined)
  useEffect(() => {
    let isCancelled = false
    const target = createTarget((shown) => !isCancelled && setMessages(shown))
    const playback = playRecording(target, recording, { pace })
    playing.current = playback
    const watchEnd = async (): Promise<void> => {
      await playback.done
      if (!isCancelled) setOver(true)
    }
    void watchEnd()
    return () => {
      isCancelled = true
      playback.stop()
    }
  }, [recording, pace])
  return { messages, isOver, step: () => playing.current?.step() }
}

/** Creates a message target that reports changes. */
function createTarget(onChange: (messages: readonly AdkUIMessage[]) => void) {
  let current: AdkUIMessage[] = []
  return {
    get messages() {
      return current
    },
    set messages(messages) {
      current = messages
      onChange(messages)
    },
  }
}
