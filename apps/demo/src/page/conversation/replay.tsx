import type { AdkUIMessage } from 'adk-stream-protocol/client'
import { MessageList } from 'adk-stream-protocol/react'
import { lazy, Suspense } from 'react'

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
          <ReplayView recording={recording} renderMessages={renderMessages} onClose={onClose} />
        </Suspense>
      </div>
    </main>
  )
}

// The buttons of a recorded approval have no effect.
const renderMessages = (messages: readonly AdkUIMessage[]) => (
  <div inert>
    <MessageList messages={messages} />
  </div>
)
