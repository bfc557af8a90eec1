import {
  type AdkUIMessage,
  type Pace,
  playRecording,
  type Playback,
} from 'adk-stream-protocol/client'
import { useEffect, useRef, useState } from 'react'

/** What a replay shows at its position. */
export interface ReplayFrame {
  readonly messages: readonly AdkUIMessage[]
  readonly position: number
  readonly length: number
  /** The recorded time, in ms since 1970. Undefined if the recording does not contain it. */
  readonly time: number | undefined
  readonly votes: ReadonlyMap<string, { readonly given: number; readonly voted: boolean }>
}

export interface Replay extends ReplayFrame {
  readonly isOver: boolean
  readonly isPaused: boolean
  readonly step: () => void
  readonly seek: (position: number) => void
  readonly setPaused: (isPaused: boolean) => void
}

const EMPTY: ReplayFrame = {
  messages: [],
  position: 0,
  length: 0,
  time: undefined,
  votes: new Map(),
}

/** Plays a recording from the start. Use a `key` to mount the component again for another recording or speed. */
export function useReplay(recording: string, pace: Pace): Replay {
  const [frame, setFrame] = useState(EMPTY)
  const [isPaused, setPaused] = useState(false)
  const playing = useRef<Playback>(undefined)
  useEffect(() => {
    const target: { messages: AdkUIMessage[] } = { messages: [] }
    let isCancelled = false
    const playback = playRecording(target, recording, {
      pace,
      onProgress: (progress) => {
        if (!isCancelled) setFrame({ ...progress, messages: target.messages })
      },
    })
    playing.current = playback
    return () => {
      isCancelled = true
      playback.stop()
    }
  }, [recording, pace])
  return {
    ...frame,
    isOver: frame.length > 0 && frame.position === frame.length,
    isPaused,
    step: () => playing.current?.step(),
    seek: (position) => playing.current?.seek(position),
    setPaused: (paused) => {
      setPaused(paused)
      if (paused) playing.current?.pause()
      else playing.current?.resume()
    },
  }
}
