import type { AdkApi, ConnectionState, Recorder, Timeline } from 'adk-stream-protocol/client'
import {
  type ComponentProps,
  lazy,
  Suspense,
  useEffect,
  useSyncExternalStore,
  type KeyboardEvent,
  type ReactNode,
  useId,
  useRef,
  useCallback,
  useState,
} from 'react'

import type { AgentInfo } from '../../studio-info.ts'
import { isOneOf, StoredChoice, useChoice } from '../settings.ts'
import { type ApprovalEntry, ApprovalPictures } from './approval-picture.tsx'
import { ChatTimeline } from './chat-timeline.tsx'
import type { Tariff } from './cost.ts'
import { inspection } from './inspection.ts'
import { RecordingPanel } from './recording-panel.tsx'
import { Streams, WireList } from './traffic.tsx'
import { useInspectorLabels } from './parts.tsx'
import { WaitingNote } from './waiting-note.tsx'
import type { WireLog, WireView } from './wire-log.ts'

const TABS = ['timeline', 'agent', 'session', 'approvals', 'streams', 'wire', 'recording'] as const
/** The tab that is shown stays after a reload. */
const storedTab = new StoredChoice<(typeof TABS)[number]>({
  key: 'inspector-tab',
  isValue: isOneOf(TABS),
  fallback: 'timeline',
})

export interface InspectorProps {
  readonly log: WireLog
  readonly recorder: Recorder
  readonly api: AdkApi
  /** The chat, if the server stores it. */
  readonly chatId: string | undefined
  readonly busy: boolean
  readonly connection: ConnectionState
  readonly tariff: Tariff
  readonly onReplay: (recording: string) => void
  /** The agent of the chat, if the server describes it. */
  readonly agent: AgentInfo | undefined
  /** Whether the server lets the inspector read sessions. */
  readonly hasSessions: boolean
  /** Whether the emulator replies instead of a model. */
  readonly isEmulated: boolean
  /** Called with a message for the open chat. */
  readonly onSend: (message: string) => void
  /** Opens another chat. */
  readonly onOpenChat: (chatId: string) => void
}

/** Shows what happened in the chat, from the record of the server, what it is waiting for, and the traffic of this page. */
export function Inspector(props: InspectorProps) {
  const { log, recorder, api, chatId, busy, connection, tariff, onReplay } = props
  const { agent, isEmulated, hasSessions, onSend, onOpenChat } = props
  const labels = useInspectorLabels()
  const view = useSyncExternalStore(log.subscribe, log.view)
  const [tab, chooseTab] = useChoice(storedTab)
  const loaded = useTimeline(api, chatId, busy)
  const { timeline } = loaded
  useEffect(() => {
    const point = ({ target }: Event): void => inspection.pointAt(target)
    document.addEventListener('focusin', point)
    document.addEventListener('click', point)
    return () => {
      document.removeEventListener('focusin', point)
      document.removeEventListener('click', point)
    }
  }, [])
  return (
    <div className="inspector">
      <WaitingNote waits={timeline?.waits} {...{ busy, connection }} />
      <Tabs
        label={labels.title}
        chosen={tab}
        choose={(name) => chooseTab(TABS.find((each) => each === name) ?? 'timeline')}
        tabs={[
          {
            name: 'timeline',
            label: labels.timeline,
            content: <TimelineTab {...{ api, chatId, loaded, view, tariff }} />,
          },
          ...(agent
            ? [
                {
                  name: 'agent',
                  label: labels.agent,
                  content: <AgentPanel {...{ agent, timeline, isEmulated, busy, onSend }} />,
                },
              ]
            : []),
          ...(hasSessions && chatId !== undefined
            ? [
                {
                  name: 'session',
                  label: labels.session,
                  content: (
                    <SessionPanel key={chatId} {...{ api, chatId, timeline, tariff, onOpenChat }} />
                  ),
                },
              ]
            : []),
          {
            name: 'approvals',
            label: labels.approvals,
            content: (
              <ApprovalPictures
                api={api}
                reader={timeline?.reader}
                approvals={(timeline?.entries ?? []).filter(isApproval).toReversed()}
              />
            ),
          },
          { name: 'streams', label: labels.streams, content: <Streams turns={view.turns} /> },
          {
            name: 'wire',
            label: labels.wire,
            content: <WireList lines={view.lines} sound={view.sound} />,
          },
          {
            name: 'recording',
            label: labels.recording,
            content: <RecordingPanel recorder={recorder} onReplay={onReplay} />,
          },
        ]}
      />
    </div>
  )
}

interface TimelineTabProps extends Pick<InspectorProps, 'api' | 'chatId' | 'tariff'> {
  readonly loaded: LoadedTimeline
  readonly view: WireView
}

function TimelineTab({ api, chatId, loaded, view, tariff }: TimelineTabProps) {
  const labels = useInspectorLabels()
  const { timeline, clockOffset, isFailed, loadEarlier } = loaded
  if (chatId === undefined) return <p className="inspector-empty">{labels.notStored}</p>
  return (
    <>
      {isFailed && <p role="alert">{labels.unreadableTimeline}</p>}
      {!timeline && !isFailed && <p role="status">{labels.loading}</p>}
      {timeline && (
        <ChatTimeline
          key={chatId}
          {...{ timeline, clockOffset, tariff, api }}
          streams={view.turns}
          onEarlier={loadEarlier}
        />
      )}
    </>
  )
}

function isApproval(entry: { readonly type: string }): entry is ApprovalEntry {
  return entry.type === 'approval'
}

interface Tab {
  readonly name: string
  readonly label: string
  readonly content: ReactNode
}

interface TabsProps {
  readonly label: string
  readonly tabs: readonly Tab[]
  /** The name of the selected tab. */
  readonly chosen: string
  readonly choose: (name: string) => void
}

// Loaded when their tabs are opened.
const LazyAgentPanel = lazy(async () => {
  const loaded = await import('./agent/agent-panel.tsx')
  return { default: loaded.AgentPanel }
})

const LazySessionPanel = lazy(async () => {
  const loaded = await import('./session/session-panel.tsx')
  return { default: loaded.SessionPanel }
})

function SessionPanel(props: ComponentProps<typeof LazySessionPanel>) {
  return (
    <Suspense>
      <LazySessionPanel {...props} />
    </Suspense>
  )
}

function AgentPanel(props: ComponentProps<typeof LazyAgentPanel>) {
  return (
    <Suspense>
      <LazyAgentPanel {...props} />
    </Suspense>
  )
}

/** Tabs as in the WAI-ARIA pattern: arrow keys switch tabs, and only the selected tab is in the tab order. */
function Tabs({ label, tabs, chosen: stored, choose }: TabsProps) {
  const id = useId()
  const listRef = useRef<HTMLDivElement>(null)
  // The stored tab may be one that this server does not offer.
  const current = tabs.find(({ name }) => name === stored) ?? tabs[0]
  const chosen = current?.name
  const onKeyDown = (event: KeyboardEvent) => {
    const step = STEPS[event.key]
    if (step === undefined) return
    event.preventDefault()
    const index = tabs.findIndex(({ name }) => name === chosen)
    const next = tabs.at((index + step) % tabs.length)
    if (!next) return
    choose(next.name)
    listRef.current?.querySelector<HTMLElement>(`[data-tab="${next.name}"]`)?.focus()
  }
  return (
    <>
      <div role="tablist" aria-label={label} className="tabs" ref={listRef}>
        {tabs.map(({ name, label: text }) => (
          <button
            key={name}
            type="button"
            role="tab"
            id={`${id}-${name}`}
            data-tab={name}
            aria-selected={name === chosen}
            aria-controls={`${id}-panel`}
            tabIndex={name === chosen ? 0 : -1}
            onClick={() => choose(name)}
            onKeyDown={onKeyDown}
          >
            {text}
          </button>
        ))}
      </div>
      <div
        role="tabpanel"
        id={`${id}-panel`}
        aria-labelledby={`${id}-${chosen}`}
        tabIndex={0}
        className="tab-panel"
      >
        {current?.content}
      </div>
    </>
  )
}

const STEPS: Readonly<Record<string, number>> = { ArrowRight: 1, ArrowLeft: -1 }

/** The timeline of a chat as it was last read. */
interface LoadedTimeline {
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
function useTimeline(api: AdkApi, chatId: string | undefined, busy: boolean): LoadedTimeline {
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
