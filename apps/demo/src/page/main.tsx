import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'

import { App } from './app.tsx'
import { ConversationWords } from './conversation/conversation-words.tsx'
import { LanguageProvider } from './i18n/language.tsx'
import { followTheme } from './settings/theme.ts'

followTheme()

const root = document.getElementById('root')
if (root) {
  createRoot(root).render(
    <StrictMode>
      <LanguageProvider>
        <ConversationWords>
          <App />
        </ConversationWords>
      </LanguageProvider>
    </StrictMode>,
  )
}
