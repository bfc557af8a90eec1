import type { AdkApi, ConnectionState, Recorder } from 'adk-stream-protocol/client'
import { useEffect, useSyncExternalStore } from 'react'

import { StoredChoice, useChoice } from '../settings/stored-choice.ts'
import type { ApprovalEntry } from './approval-path.ts'
import { ApprovalPictures } from './approval-picture.tsx'
import { ChatTimeline } from './chat-timeline.tsx'
import { inspection } from './inspection.ts'
import { RecordingPanel } from './recording-panel.tsx'
import { Streams } from './streams.tsx'
import { Tabs } from './tabs.tsx'
import { useInspectorLabels } from './use-inspector-labels.ts'
import type { TokenPrices } from './timeline-rows.ts'
import { type LoadedTimeline, useTimeline } from './use-timeline.ts'
import { WaitingNote } from './waiting-note.tsx'
import { WireList } from './wire-list.tsx'
import type { WireLog, WireView } from './wire-log.ts'

const TABS = ['timeline', 'approvals', 'streams', 'wire', 'recording'] as const
/** The tab that is shown stays after a reload. */
const storedTab = new StoredChoice<(typeof TABS)[number]>({
  key: 'inspector-tab',
  values: TABS,
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
  readonly prices: TokenPrices
  readonly onReplay: (recording: string) => void
}

/** Shows what happened in the chat, from the record of the server, what it is waiting for, and the traffic of this page. */
export function Inspector(props: InspectorProps) {
  const { log, recorder, api, chatId, busy, connection, prices, onReplay } = props
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
            content: <TimelineTab {...{ api, chatId, loaded, view, prices }} />,
          },
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
          {
            name: 'streams',
            label: labels.streams,
            content: <Streams turns={view.turns} />,
          },
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

interface TimelineTabProps extends Pick<InspectorProps, 'api' | 'chatId' | 'prices'> {
  readonly loaded: LoadedTimeline
  readonly view: WireView
}

function TimelineTab({ api, chatId, loaded, view, prices }: TimelineTabProps) {
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
          {...{ timeline, clockOffset, prices, api }}
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
