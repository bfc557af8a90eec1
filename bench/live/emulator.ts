import { startEmulator } from 'gemini-emulator'

/** The model of a run, in a process of its own: what it costs is nobody's figure. */
const { baseUrl } = await startEmulator({ paceMs: 0, live: { keepFrames: 1 } })
process.on('disconnect', () => process.exit())
process.send?.(baseUrl)
