import { z } from 'zod'

// Zod compiles its schemas with `new Function` where it may. The page's policy forbids that, and even asking is reported
// as a violation; so this must run before any other module makes a schema.
z.config({ jitless: true })
