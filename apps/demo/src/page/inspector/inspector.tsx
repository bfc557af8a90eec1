import type { AdkApi, AdkUIMessage, ConnectionState, Recorder } from 'adk-stream-protocol/client'
import { useSyncExternalStore } from 'react'

import { ApprovalPictures, type ShownApproval } from './approval-picture.tsx'
import { RecordingPanel } from './recording-panel.tsx'
import { Tabs } from './tabs.tsx'
import { useInspectorLabels } from './labels.ts'
import { Timeline } from './timeline.tsx'
import { WaitingNote } from './waiting-note.tsx'
import { findBlocker } from './find-blocker.ts'
import { WireList } from './wire-list.tsx'
import type { WireLog } from './wire-log.ts'

export interface InspectorProps {
  readonly log: WireLog
  readonly recorder: Recorder
  readonly api: AdkApi
  readonly messages: readonly AdkUIMessage[]
  readonly busy: boolean
  readonly connection: ConnectionState
  readonly onReplay: (recording: string) => void
}

/** Shows the traffic of the conversation and what it is waiting for. */
export function Inspector(props: InspectorProps) {
  const { log, recorder, api, messages, onReplay } = props
  const labels = useInspectorLabels()
  const { turns, lines, sound } = useSyncExternalStore(log.subscribe, log.view)
  return (
    <div className="inspector">
      <WaitingNote waiting={findBlocker(props)} />
      <Tabs
        label={labels.title}
        tabs={[
          { name: 'timeline', label: labels.timeline, content: <Timeline turns={turns} /> },
          {
            name: 'approvals',
            label: labels.approvals,
            content: <ApprovalPictures api={api} approvals={findApprovals(messages)} />,
          },
          {
            name: 'wire',
            label: labels.wire,
            content: <WireList lines={lines} sound={sound} />,
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

/** Returns the approvals of the conversation, newest first, with the state of their call. */
function findApprovals(messages: readonly AdkUIMessage[]): ShownApproval[] {
  return messages
    .flatMap(({ parts }) =>
      parts.flatMap((part) => {
        if (part.type !== 'data-approval') return []
        const { approvalId, toolCallId, state } = part.data
        const call = parts.find((other) => 'toolCallId' in other && other.toolCallId === toolCallId)
        const callState = call && 'state' in call ? call.state : ''
        return [{ id: approvalId, state: `${state} ${callState}` }]
      }),
    )
    .toReversed()
}
