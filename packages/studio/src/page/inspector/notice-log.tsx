import type { AdkApi } from 'adk-stream-protocol/client'
import { useAdkLabels } from 'adk-stream-protocol/react'
import { useState } from 'react'

import { formatTime } from './format.ts'
import { useInspectorLabels } from './parts.tsx'

interface NoticeLogProps {
  readonly api: Pick<AdkApi, 'listNotices'>
  readonly approvalId: string
}

type Notices = Awaited<ReturnType<AdkApi['listNotices']>>

/** Who was told of an approval: by which channel, when, and whether it arrived. It is read when it is opened. */
export function NoticeLog({ api, approvalId }: NoticeLogProps) {
  const { notices: labels } = useAdkLabels()
  const inspector = useInspectorLabels()
  const [notices, setNotices] = useState<Notices>()
  const [hasFailed, setFailed] = useState(false)
  const load = async (): Promise<void> => {
    const found = await api.listNotices(approvalId).catch(() => undefined)
    setFailed(found === undefined)
    if (found) setNotices(found)
  }
  return (
    <details
      className="model-call"
      onToggle={({ currentTarget }) => currentTarget.open && void load()}
    >
      <summary>{labels.title}</summary>
      <p role="status">{hasFailed ? labels.failed : notices?.length === 0 && labels.none}</p>
      {notices && notices.length > 0 && (
        <ol className="notice-log">
          {notices.map(({ type, channel, to, state, at, attempts }, index) => (
            // The order of the notices of an approval does not change.
            <li key={index}>
              <code>{to === undefined ? channel : `${channel} (${to})`}</code>{' '}
              {labels.types[type] ?? type} · {labels.states[state]} {formatTime(at, inspector)}
              {attempts > 0 && <> · {labels.attempts(attempts)}</>}
            </li>
          ))}
        </ol>
      )}
    </details>
  )
}
