import {
  type AdkUIMessage,
  playRecording,
  type Playback,
  type Pace,
} from 'adk-stream-protocol/client'
import { useEffect, useRef, useState } from 'react'

export interface Replay {
  readonly messages: readonly AdkUIMessage[]
  readonly isOver: boolean
  readonly step: () => void
}

/** Plays a recording from its beginning, anew whenever the pace is changed. */
export function useReplay(recording: string, pace: Pace): Replay {
  const [messages, setMessages] = useState<readonly AdkUIMessage[]>([])
  const [isOver, setOver] = useState(false)
  const playing = useRef<Playback>(undefined)
  useEffect(() => {
    setMessages([])
    setOver(false)
    const stage = createStage(setMessages)
    const playback = playRecording(stage, recording, { pace })
    playing.current = playback
    let isLeft = false
    void playback.done.then(() => {
      if (!isLeft) setOver(true)
    })
    return () => {
      isLeft = true
      playback.stop()
    }
  }, [recording, pace])
  return { messages, isOver, step: () => playing.current?.step() }
}

/** A place for messages that tells when they change. */
function createStage(onChange: (messages: readonly AdkUIMessage[]) => void) {
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
