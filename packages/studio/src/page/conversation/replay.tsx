import { MessageList } from 'adk-stream-protocol/react'
import { lazy, Suspense, useState } from 'react'

import type { ReplayFrame } from '../inspector/replay-view.tsx'
import { ConversationSettings } from './conversation-settings.tsx'

interface ReplayProps {
  readonly recording: string
  readonly onClose: () => void
}

const ReplayView = lazy(async () => {
  const loaded = await import('../inspector/replay-view.tsx')
  return { default: loaded.ReplayView }
})

/** Shows a recorded conversation, read-only, instead of the open chat. */
export function Replay({ recording, onClose }: ReplayProps) {
  return (
    <main className="scroller replaying">
      <div className="column">
        <Suspense>
          <ReplayView recording={recording} renderFrame={renderFrame} onClose={onClose} />
        </Suspense>
      </div>
    </main>
  )
}

const renderFrame = (frame: ReplayFrame) => <Recorded {...frame} />

/** The recorded messages. Their buttons are disabled, and their countdowns stand at the recorded time. */
function Recorded({ messages, votes, time }: ReplayFrame) {
  // Earlier recordings do not contain their time. Their countdowns stand still too.
  const [openedAt] = useState(Date.now)
  return (
    <ConversationSettings time={time ?? openedAt}>
      <fieldset className="replayed" disabled>
        <MessageList messages={messages} votes={votes} />
      </fieldset>
    </ConversationSettings>
  )
}
