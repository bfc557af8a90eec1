# The demo: docker build -t adk-demo . && docker run -p 8000:8000 -v adk-demo:/data adk-demo
FROM node:24-slim
WORKDIR /app
# The installation builds the library and the page.
COPY . .
RUN npm ci
# The page is opened from outside of the container.
ENV HOST=0.0.0.0 DATA_DIR=/data
RUN mkdir /data && chown node:node /data
VOLUME /data
EXPOSE 8000
USER node
# Not npm: it would be the first process, and receive the signals.
CMD ["node", "--import", "@google/adk", "--import", "tsx", "--conditions=@adk-stream-protocol/source", "apps/demo/scripts/start.ts"]
