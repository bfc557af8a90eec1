import type { AdkApi, Timeline } from 'adk-stream-protocol/client'
import { useCallback, useEffect, useRef, useState } from 'react'

/** The timeline of a chat as it was last read. */
export interface LoadedTimeline {
  readonly timeline: Timeline | undefined
  /** How far the clock of the server is ahead of that of this device, in milliseconds, measured when the timeline arrived. */
  readonly clockOffset: number
  readonly isFailed: boolean
  /** Reads the turns before the oldest one that is shown. */
  readonly loadEarlier: () => void
}

/** While something runs on the server, it is read again at this interval. */
const POLL_MS = 1_000

/** Reads the timeline of a chat, and reads it again when something happens in the chat, here or elsewhere. */
export function useTimeline(
  api: AdkApi,
  chatId: string | undefined,
  busy: boolean,
): LoadedTimeline {
  const [read, setTimeline] = useState<Timeline>()
  // Until another chat is read, the timeline of the previous one is not shown.
  const timeline = read?.chatId === chatId ? read : undefined
  const [clockOffset, setClockOffset] = useState(0)
  const [isFailed, setFailed] = useState(false)
  const earlier = useRef<Timeline[]>([])
  const shown = useRef<string>(undefined)
  const load = useCallback(async () => {
    if (chatId === undefined) return
    try {
      const newest = await api.readTimeline(chatId)
      if (shown.current !== chatId) return
      setTimeline(join(earlier.current, newest))
      setClockOffset(newest.now - Date.now())
      setFailed(false)
    } catch {
      if (shown.current === chatId) setFailed(true)
    }
  }, [api, chatId])
  useEffect(() => {
    shown.current = chatId
    earlier.current = []
    if (chatId === undefined) return undefined
    void load()
    return api.watchChat(chatId, () => void load())
  }, [api, chatId, load])
  const isActive = busy || timeline?.running === true || timeline?.waits.some(isRunning) === true
  useEffect(() => {
    void load()
    if (!isActive) return undefined
    const timer = setInterval(() => void load(), POLL_MS)
    return () => clearInterval(timer)
  }, [load, isActive])
  const loadEarlier = async (): Promise<void> => {
    const before = timeline?.next
    if (chatId === undefined || before === undefined) return
    try {
      earlier.current = [await api.readTimeline(chatId, { before }), ...earlier.current]
      await load()
    } catch {
      setFailed(true)
    }
  }
  return { timeline, clockOffset, isFailed, loadEarlier: () => void loadEarlier() }
}

/** People take their time. Everything else ends soon. */
function isRunning({ for: what }: Timeline['waits'][number]): boolean {
  return what !== 'approval' && what !== 'application'
}

/** Adds earlier pages to the newest one. */
function join(earlier: readonly Timeline[], newest: Timeline): Timeline {
  const [oldest] = earlier
  if (!oldest) return newest
  const known = new Set(newest.entries.map(({ id }) => id))
  const entries = earlier.flatMap((page) => page.entries).filter(({ id }) => !known.has(id))
  const { next: _next, ...rest } = newest
  return {
    ...rest,
    entries: [...entries, ...newest.entries],
    ...(oldest.next !== undefined && { next: oldest.next }),
  }
}
