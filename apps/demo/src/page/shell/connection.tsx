import { ConnectionBadge, useConnection } from 'adk-stream-protocol/react'

import { useMode } from '../settings/mode.ts'
import { transports } from '../wire/wire.ts'

/** How the connection of the chosen mode is; of one that needs none there is nothing to say. */
export function Connection() {
  const [mode] = useMode()
  const connection = useConnection(transports[mode])
  return connection.state === 'idle' ? null : <ConnectionBadge connection={connection} />
}
