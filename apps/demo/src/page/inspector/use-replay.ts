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

/** Plays a recording from its beginning. For another one or another pace, be another component: give it a `key`. */
export function useReplay(recording: string, pace: Pace): Replay {
  const [messages, setMessages] = useState<readonly AdkUIMessage[]>([])
  const [isOver, setOver] = useState(false)
  const playing = useRef<Playback>(undefined)
  useEffect(() => {
    let isLeft = false
    const target = createTarget((shown) => !isLeft && setMessages(shown))
    const playback = playRecording(target, recording, { pace })
    playing.current = playback
    const watchEnd = async (): Promise<void> => {
      await playback.done
      if (!isLeft) setOver(true)
    }
    void watchEnd()
    return () => {
      isLeft = true
      playback.stop()
    }
  }, [recording, pace])
  return { messages, isOver, step: () => playing.current?.step() }
}

/** A place for messages that tells when they change. */
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
