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

/** A recorded conversation in the place of the one that is open: to be seen, not to be answered. */
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

// Buttons of a call that waited then would decide nothing now.
const renderMessages = (messages: readonly AdkUIMessage[]) => (
  <div inert>
    <MessageList messages={messages} />
  </div>
)
