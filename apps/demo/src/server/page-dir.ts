import { fileURLToPath } from 'node:url'

/** The built page with the demo's plug-in. */
export const PAGE_DIR = fileURLToPath(new URL('../../dist', import.meta.url))
