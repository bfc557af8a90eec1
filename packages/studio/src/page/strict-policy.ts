import { z } from 'zod'

// Zod compiles its schemas with `new Function` if it can. The page's content security policy forbids that, and reports even the
// attempt as a violation. This must run before any other module creates a schema.
z.config({ jitless: true })
