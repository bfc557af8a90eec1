import { ConnectionBadge, useConnection } from 'adk-stream-protocol/react'

import { useMode } from '../settings/mode.ts'
import { transports } from '../wire/wire.ts'

/** Shows that there is a connection. A notice in the conversation says when it is lost. */
export function Connection() {
  const [mode] = useMode()
  const connection = useConnection(transports[mode])
  const isOpen = connection.state === 'open' || connection.state === 'connecting'
  return isOpen ? <ConnectionBadge connection={connection} /> : null
}
